"""What the actions of policies do: a table from the type of an action to its validation and application."""
