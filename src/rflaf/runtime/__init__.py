"""What is about the machine and not about the model: threads, memory, files, progress, warnings."""
