"""One asynchronous chat interface: any endpoint, transformers in process."""
