"""Output for people: tables for the terminal, drawings, curves, and the page that has it all."""
