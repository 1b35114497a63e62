/** One reader of the conversation: what it has, and the lines that it gets next. */
import type {
  NativeItem,
  TextDelta,
  TurnNow,
  ConversationReport,
} from "../../src/domain/conversation/conversation.ts";

/** The feed, as a reader sees it. */
interface Source {
  readonly versionsAfter: (rev: number) => Iterable<NativeItem>;
  readonly turnNow: TurnNow;
  readonly turnsEnded: number;
  readonly turnRev: number;
  readonly detach: (reader: FeedReader) => void;
}

/** Deltas that wait for a slow reader, in UTF-16 code units of their text. Beyond that it loses them. */
const WAITING_MAX = 64 * 1024;

const toLine = (report: ConversationReport): string => `${JSON.stringify(report)}\n`;

export class FeedReader {
  readonly #source: Source;
  readonly #wake: () => void;
  #sent: number;
  #deltas: TextDelta[] = [];
  #waiting = 0;
  #owesTurn = true;

  constructor(source: Source, { after, wake }: { readonly after: number; readonly wake: () => void }) {
    this.#source = source;
    this.#sent = after;
    this.#wake = wake;
  }

  close(): void {
    this.#source.detach(this);
  }

  /** The next lines, about `maxLength` of them at most. Empty: there is nothing more. */
  take(maxLength: number): string {
    let lines = "";
    for (const item of this.#source.versionsAfter(this.#sent)) {
      lines += toLine({ type: "item", item });
      this.#sent = item.rev;
      if (lines.length >= maxLength) return lines;
    }
    for (const delta of this.#deltas) lines += toLine({ type: "delta", delta });
    this.#forgetDeltas();
    if (this.#owesTurn) {
      this.#sent = Math.max(this.#sent, this.#source.turnRev);
      const { turnNow: turn, turnsEnded: ended } = this.#source;
      lines += toLine({ type: "turn", turn, ended, rev: this.#sent });
    }
    this.#owesTurn = false;
    return lines;
  }

  turned(): void {
    this.#owesTurn = true;
    this.#wake();
  }

  grew(delta: TextDelta): void {
    this.#waiting += delta.text.length;
    if (this.#waiting > WAITING_MAX) this.#forgetDeltas();
    else this.#deltas.push(delta);
    this.#wake();
  }

  /** The item has a new version, which contains what waits of it. */
  reported(id: string): void {
    this.#deltas = this.#deltas.filter((delta) => delta.native_id !== id);
    this.#waiting = this.#deltas.reduce((sum, { text }) => sum + text.length, 0);
    this.#wake();
  }

  #forgetDeltas(): void {
    this.#deltas = [];
    this.#waiting = 0;
  }
}
