"""What `python -m course` answers, where no other room does."""
