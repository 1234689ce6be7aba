"""Scheduling policies: one published idea a module, and the table of the names that users write.

The table is read before the first policy is imported, whichever that is: messages name policies as it does.
"""

from eclectus.policies import table as table
