"""The simulator beside published figures and closed forms: bench/report.md."""
