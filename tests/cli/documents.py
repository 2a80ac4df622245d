"""The man page and the completions know every verb and flag, and no other: documents.py PAWL SOURCE

Goal: no flag is added without its documents. Method: what `pawl help` lists is looked up in each file; flags that a document
names must exist.
"""
import pathlib
import re
import subprocess
import sys

PAWL, SOURCE = sys.argv[1], pathlib.Path(sys.argv[2])


def run(*words):
    return subprocess.run([PAWL, *words], stdout=subprocess.PIPE, text=True, check=True).stdout


def main():
    verbs = re.findall(r"^  ([a-z0-9]+(?: [a-z]+)?)  +\S", run("help"), re.M)
    flags = {verb: set(re.findall(r"^  --([a-z-]+)", run("help", *verb.split()), re.M)) for verb in verbs}
    aliases = {verb: set(re.findall(r"; also --([a-z-]+)", run("help", *verb.split()))) for verb in verbs}
    every = set().union(*flags.values(), *aliases.values())
    faults = []

    man = (SOURCE / "docs/man/pawl.1").read_text().replace("\\-", "-")
    for verb in verbs:
        if not re.search(rf"^\.SS pawl {verb}\b", man, re.M):
            faults.append(f"pawl.1: no section for {verb}")
    named = set(re.findall(r"--([a-z][a-z-]*)", man))
    faults += [f"pawl.1: --{flag} is missing" for flag in sorted(every - named)]
    faults += [f"pawl.1: --{flag} is no flag" for flag in sorted(named - every - {"version", "flag"})]

    bash = (SOURCE / "cli/completions/pawl.bash").read_text()
    zsh = (SOURCE / "cli/completions/_pawl").read_text()
    fish = (SOURCE / "cli/completions/pawl.fish").read_text()
    for verb in verbs:
        wanted = flags[verb] | aliases[verb]
        line = re.search(rf"^ +'{verb}'\) COMPREPLY=\(\$\(compgen -W '([^']*)'", bash, re.M)
        part = re.search(rf"^_pawl_{verb.replace(' ', '_')}\(\)\n{{\n(.*?)^}}", zsh, re.M | re.S)
        found = {
            "pawl.bash": set(re.findall(r"--([a-z-]+)", line[1])) if line else None,
            "_pawl": set(re.findall(r"^ +'--([a-z-]+)[=\[]", part[1], re.M)) if part else None,
            "pawl.fish": set(re.findall(rf"""__pawl_verb "{verb}"' -l ([a-z-]+)""", fish)),
        }
        faults += [f"{name}: {verb}: {sorted((there or set()) ^ wanted)}" for name, there in found.items() if there != wanted]
    subprocess.run(["bash", "-n", str(SOURCE / "cli/completions/pawl.bash")], check=True)

    script = 'source "$1"; COMP_WORDS=(pawl ckpt pr); COMP_CWORD=2; _pawl; echo "${COMPREPLY[@]}"; ' \
             'COMP_WORDS=(pawl ls --sort n); COMP_CWORD=3; _pawl; echo "${COMPREPLY[@]}"'
    told = subprocess.run(["bash", "-c", script, "bash", str(SOURCE / "cli/completions/pawl.bash")], stdout=subprocess.PIPE,
                          text=True, check=True).stdout
    if told != "prune\nname\n":
        faults.append(f"pawl.bash completes {told!r}")
    if not verbs or len(every) < 30:
        faults.append(f"only {len(verbs)} verbs and {len(every)} flags were found")
    sys.exit("\n".join(faults) if faults else 0)


main()
