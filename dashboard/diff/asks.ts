/** Comments on a diff for the agent that made the changes. It gets them as one message. The tab keeps them until then, and shows them afterwards. */
import { keep, readKept } from "../frame/kept.ts";
import { type Place, placeWords } from "./place.ts";

export interface Ask {
  readonly place: Place;
  /** The text of the lines. "": the whole file. */
  readonly quote: string;
  readonly text: string;
  /** Whether the agent has it. */
  readonly isSent?: boolean;
}

/** As many as a reader writes at once. The message stays below the service's limit. */
const ASKS_MAX = 50;
const ASK_CHARS = 2000;
const QUOTE_CHARS = 200;

const storedAs = (session: string): string => `asks ${session}`;

/** Those that were sent, too. The oldest first. */
export const asksOf = (session: string): readonly Ask[] => readKept(storedAs(session)) ?? [];

/** Those that the agent does not have yet. */
export const unsentOf = (session: string): readonly Ask[] => asksOf(session).filter(({ isSent }) => !isSent);

const store = (session: string, asks: readonly Ask[]): void =>
  keep(storedAs(session), asks.length === 0 ? null : asks);

/** @throws Error if there are too many */
export const addAsk = (session: string, { place, quote, text }: Ask): void => {
  const unsent = unsentOf(session);
  if (unsent.length >= ASKS_MAX)
    throw new Error(`A review has at most ${ASKS_MAX} comments. Send these first.`);
  const own = { place, quote: quote.trim().slice(0, QUOTE_CHARS), text: text.slice(0, ASK_CHARS) };
  store(session, [...asksOf(session), own]);
};

/** @param at its index in `asksOf` */
export const removeAsk = (session: string, at: number): void =>
  store(
    session,
    asksOf(session).filter((_, index) => index !== at),
  );

/** The agent has all of them. Of those that it has, the newest stay. */
export const markSent = (session: string): void =>
  store(
    session,
    asksOf(session)
      .slice(-ASKS_MAX)
      .map((ask) => ({ place: ask.place, quote: ask.quote, text: ask.text, isSent: true })),
  );

/** As code: a line of a diff begins like a list. Its fence is longer than any in it. */
const quoted = (quote: string): readonly string[] => {
  if (quote === "") return [];
  const longest = Math.max(2, ...(quote.match(/`+/g) ?? []).map(({ length }) => length));
  const fence = "`".repeat(longest + 1);
  return [fence, quote, fence, ""];
};

/** The message to the agent. */
export const askMessage = (asks: readonly Ask[]): string =>
  [
    "Here are review comments on your changes. Address each of them, commit, and push.",
    ...asks.map(({ place, quote, text }, at) =>
      [`${at + 1}. ${placeWords(place)}`, ...quoted(quote), text].join("\n"),
    ),
  ].join("\n\n");
