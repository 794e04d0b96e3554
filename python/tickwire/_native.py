"""Explains which systems are supported, if the native module can't be imported."""

__all__: list[str] = []

try:
    import tickwire._core as _core  # noqa: F401  to see whether it is there
except ModuleNotFoundError as error:
    if error.name != "tickwire._core":
        raise
    import platform
    import sysconfig

    build = " free-threaded" if sysconfig.get_config_var("Py_GIL_DISABLED") else ""
    here = f"{platform.python_implementation()} {platform.python_version()}{build}"
    machine = f"{platform.system()} {platform.machine()}"
    raise ImportError(
        f"tickwire has no native module for {here} on {machine}: wheels are for CPython 3.11 and later, "
        "and one of its own for free-threaded 3.14, on Linux, macOS and Windows. Elsewhere pip builds it "
        "from the source distribution, with Rust",
        name=error.name,
    ) from None
