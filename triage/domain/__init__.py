"""The words of the program: mail, category, decision, run, error. Standard library only, no I/O, no clock."""
