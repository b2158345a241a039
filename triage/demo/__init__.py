"""A mailbox to try the program on: sample mail and an IMAP server inside the process."""
