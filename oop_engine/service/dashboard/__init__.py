"""Dashboard: how a service is doing, and why a window is still open, for a browser, a terminal and Prometheus."""
