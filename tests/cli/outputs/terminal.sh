# binary data is kept from a terminal
"$PYTHON" - <<'END'
import os, pty, subprocess
def on_terminal(*words):
    main, side = pty.openpty()
    done = subprocess.run(["gnomon", *words], stdout=side, stderr=subprocess.PIPE, text=True)
    os.close(side)
    try:
        printed = os.read(main, 10000).decode().replace("\r\n", "\n")
    except OSError:
        printed = ""
    os.close(main)
    print(printed + done.stderr + f"exit {done.returncode}")
on_terminal("project", "small.npy", "-k", "2")
on_terminal("operator", "-k", "2", "-D", "3")
on_terminal("operator", "-k", "2", "-D", "3", "--output-format", "csv")
END
