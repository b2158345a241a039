"""The Mailbox port on IMAP: `imap.ImapMailbox` with `settings.ConnectionSettings`."""
