"""The sparse machines: exact linear programs by cutting planes and homotopy."""
