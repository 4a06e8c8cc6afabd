"""The folder every verb shares: what it holds, and the stages that read and write it."""
