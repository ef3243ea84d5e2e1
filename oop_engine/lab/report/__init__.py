"""What a person reads: tables for the terminal, drawings, curves, and the page that has it all."""
