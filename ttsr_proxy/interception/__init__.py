"""The exchange: one client request and its upstream attempts, as a state machine without I/O."""
