/** Commands of runtimes: messages that begin with `/name`. */
import type { RuntimeOffers } from "../../src/domain/conversation/steering.ts";

/** How many commands of a runtime people are offered, and how long a name may be. Descriptions are cut. */
const COMMANDS_MAX = 200;
const NAME_MAX = 100;
const ABOUT_MAX = 300;

/** A runtime's list of commands, as people see it. Names with white space cannot be written. */
export const toCommands = (
  commands: readonly { readonly name: string; readonly description?: string | null }[],
): NonNullable<RuntimeOffers["commands"]> =>
  commands
    .filter(({ name }) => name.length <= NAME_MAX && /^\S+$/.test(name))
    .slice(0, COMMANDS_MAX)
    .map(({ name, description }) => ({ name, description: description?.slice(0, ABOUT_MAX) ?? null }));

/** The command that a text begins with, and the rest of the text. Null if it begins with none. */
export const commandIn = (text: string): { readonly name: string; readonly rest: string } | null => {
  const [, name, rest = ""] = /^\/(\S+)(?:\s+(.*))?$/s.exec(text.trim()) ?? [];
  return name === undefined ? null : { name, rest };
};
