"""What OpenAI's two APIs, Chat Completions and Responses, have in common."""
