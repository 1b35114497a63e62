/** Parts that all lists share: pages, newest first. */
import type { Outcome } from "../command.ts";
import type { DecodedAnswer } from "../client.ts";
import { count } from "../words.ts";

export const pageOptions = {
  limit: { value: "N", about: "How many, up to 200 (50)", reads: count },
  cursor: { value: "CURSOR", about: "Continue after an earlier page" },
} as const;

/** The query of a page. */
export const page = (options: {
  readonly limit: string | undefined;
  readonly cursor: string | undefined;
}) => ({
  ...(options.limit !== undefined && { limit: count(options.limit, "--limit") }),
  ...(options.cursor !== undefined && { cursor: options.cursor }),
});

/** Says how to get the next page. */
export const pageNote = (
  { next_cursor: next }: { readonly next_cursor?: string | null },
  note: (line: string) => void,
): void => {
  if (next != null) note(`For the next page: --cursor ${next}`);
};

/** A page, with the cursor of the next one. */
export const pageOutcome = (
  { value, text }: DecodedAnswer<{ readonly next_cursor: string | null }>,
  rows: string,
  note: (line: string) => void,
): Outcome => {
  pageNote(value, note);
  return { json: text, text: rows };
};
