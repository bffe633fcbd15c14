"""The rules. Pure: standard library only, time and randomness are passed in."""
