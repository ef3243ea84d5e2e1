"""The kernel: streams, punctuation and graphs; it knows no operator."""
