"""The mock world: tool schemas, typed entities, faults on a schedule, and one seeded state machine."""
