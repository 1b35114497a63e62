/**
 * Parsed catalogues of this process. A catalogue has up to 2,000 tools and is read with every call, but changes seldom.
 *
 *  CT1 A row's small columns are read each time. Its catalogues are taken from here only if they have the row's pins and instants.
 *  CT2 The texts of all that is kept have at most `BYTES_MAX` characters. The row that was used longest ago goes first.
 */
import { BoundedMap } from "../../../ground/bounded-map.ts";
import type { Catalogue } from "../../../domain/connector/catalogue.ts";

/** The parsed form takes a few times as much. */
const BYTES_MAX = 16 * 1024 * 1024;

/** Identifies the content of a catalogue. The pin alone does not: it does not cover the operations that were left out. */
export interface Mark {
  readonly pin: string | null;
  readonly at: number | null;
}

interface Kept {
  readonly mark: string;
  readonly latest: Catalogue | null;
  readonly accepted: Catalogue | null;
  readonly size: number;
}

const encodeMarks = (latest: Mark, accepted: Mark): string =>
  JSON.stringify([latest.pin, latest.at, accepted.pin, accepted.at]);

const parse = (text: string | null): Catalogue | null =>
  text === null ? null : (JSON.parse(text) as Catalogue);

export class CatalogueTexts {
  readonly #kept = new BoundedMap<string, Kept>(BYTES_MAX, ({ size }) => size);

  /** The catalogues of a row. Null if they are not here (CT1). */
  find(key: string, latest: Mark, accepted: Mark): Pick<Kept, "latest" | "accepted"> | null {
    const entry = this.#kept.get(key);
    return entry?.mark === encodeMarks(latest, accepted) ? (this.#kept.use(key) ?? null) : null;
  }

  /** Parses the texts of a row, and keeps them. */
  keep(
    key: string,
    latest: Mark & { readonly text: string | null },
    accepted: Mark & { readonly text: string | null },
  ): Pick<Kept, "latest" | "accepted"> {
    const size = (latest.text?.length ?? 0) + (accepted.text?.length ?? 0);
    const both = { latest: parse(latest.text), accepted: parse(accepted.text) };
    this.#kept.set(key, { mark: encodeMarks(latest, accepted), ...both, size });
    return both;
  }
}
