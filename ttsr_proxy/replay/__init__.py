"""What agents wrote down of their conversations, judged by today's rules."""
