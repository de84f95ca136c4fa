__version__ = "0.2.0"
DOCUMENTS = "https://rflaf.github.io/rflaf/"  # where the site that `make docs` builds is published
