"""The Hub: publish rollouts behind a gate and with a card, and load them back as they were."""
