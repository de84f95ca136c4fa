"""`python -m rflaf.fused` compiles the kernels and keeps them on disk, as `rflaf warm-up` does."""

from rflaf.warm_up import warm_up

if __name__ == "__main__":
    print(warm_up())
