/**
 * Which turns go on with the model of another agent, and the words for people.
 *
 *  L1 A turn goes on if its model refused or was not available before it said a word. A text that only repeats the error is none.
 *  L2 Each agent is tried once, in the order of the table. The turns that follow stay with the last one, until a person chooses a model or the
 *     sandbox ends.
 */
import type { LaunchFallback } from "../sandbox/launch.ts";
import type { TurnError } from "../session/last-turn.ts";
import { modelErrorWords } from "../session/model-errors.ts";

/** Whether another model may answer after this error. */
export const mayFallBack = ({ code }: TurnError): boolean => (modelErrorWords(code)?.reason ?? null) !== null;

/** Letters and digits only: runtimes wrap an error's words in their own. */
const plain = (text: string): string =>
  text
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}]+/gu, " ")
    .trim();
/** The provider's words in an error's sentence. */
const providerWords = ({ message }: TurnError): string =>
  plain(message.slice(message.lastIndexOf("It said: ") + 9));

/** Shorter words of a provider may stand in any text. */
const WORDS_MIN = 8;

/** L1. @param texts what the agent wrote in the turn */
export const saidNothing = (texts: readonly string[], error: TurnError): boolean => {
  const words = providerWords(error);
  return texts.map(plain).every((text) => text === "" || (words.length >= WORDS_MIN && text.includes(words)));
};

/**
 * The next agent to try (L2).
 *
 * @param at how many of them have had their turn
 * @param failed the model that refused, as the runtime names it. Null if not known
 * @returns its place, or null if none is left
 */
export const nextFallback = (
  agents: readonly LaunchFallback[],
  { at, failed }: { readonly at: number; readonly failed: string | null },
): number | null => {
  const nextIndex = agents.findIndex(({ model }, place) => place >= at && model !== failed);
  return nextIndex === -1 ? null : nextIndex;
};

/** What people read in the conversation when a turn goes on with another agent. */
export const fallbackNote = (
  failedModel: string | null,
  error: TurnError,
  { name, model }: Pick<LaunchFallback, "name" | "model">,
): string => {
  const [, words = ""] = error.message.split("It said: ");
  return (
    `${failedModel ?? "The model"} refused (${modelErrorWords(error.code)?.reason ?? error.code}). ` +
    `The turn goes on with the agent ${name} and its model ${model}.${words === "" ? "" : ` The provider said: ${words}`}`
  );
};
