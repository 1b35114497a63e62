/** `platform completion`: what a shell asks for when a person presses Tab. */
import { command, type Command } from "../command.ts";
import { parseWord } from "../words.ts";

const SHELLS = ["bash", "zsh", "fish"] as const;

/** Each asks this program for the words that may come next, so that a new command needs no new script. */
const SCRIPTS: Readonly<Record<(typeof SHELLS)[number], string>> = {
  bash: `_platform() {
  COMPREPLY=($(compgen -W "$(platform completion words -- "\${COMP_WORDS[@]:1:COMP_CWORD-1}" 2>/dev/null)" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _platform platform`,
  zsh: `#compdef platform
_platform() {
  compadd -- \${(f)"$(platform completion words -- "\${(@)words[2,CURRENT-1]}" 2>/dev/null)"}
}
compdef _platform platform`,
  fish: `complete -c platform -f -a '(platform completion words -- (commandline -opc)[2..-1] 2>/dev/null)'`,
};

const EVERYWHERE = ["--json", "--help"];

/** The words that may follow: the next ones of commands, and the options of a whole command. */
export const nextWords = (before: readonly string[], commands: readonly Command[]): readonly string[] => {
  const words = before.filter((word) => !word.startsWith("-"));
  const whole = commands.find(({ name }) => {
    const own = name.split(" ");
    return own.length <= words.length && own.every((word, at) => word === words[at]);
  });
  if (whole !== undefined) {
    const options = Object.keys(whole.options).map((name) => `--${name}`);
    return [...options, ...(whole.inProject ? ["--project"] : []), ...EVERYWHERE];
  }
  const next = commands.flatMap(({ name }) => {
    const own = name.split(" ");
    return words.every((word, at) => word === own[at]) ? (own[words.length] ?? []) : [];
  });
  return [...new Set(next)];
};

export const completion = command({
  name: "completion",
  about: "Print the completion script of a shell: bash, zsh or fish",
  takes: ["SHELL"],
  rest: "WORD",
  notes: `bash: add \`source <(platform completion bash)\` to ~/.bashrc
zsh: add \`source <(platform completion zsh)\` to ~/.zshrc, below compinit
fish: platform completion fish > ~/.config/fish/completions/platform.fish`,
  run: ({ given, rest, commands }) => {
    if (given.SHELL === "words") {
      const words = nextWords(rest, commands);
      return Promise.resolve({ json: JSON.stringify({ words }), text: words.join("\n") });
    }
    const script = SCRIPTS[parseWord(given.SHELL, SHELLS, "SHELL") ?? "bash"];
    return Promise.resolve({ json: JSON.stringify({ script }), text: script });
  },
});
