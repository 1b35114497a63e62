/** Follows the daemon's report of the conversation, as the service does. */
import * as Schema from "effect/Schema";
import {
  ConversationReport,
  type NativeItem,
  type TurnNow,
} from "../../../src/domain/conversation/conversation.ts";

const decode = Schema.decodeUnknownSync(Schema.fromJsonString(ConversationReport));

export class Follower {
  readonly items = new Map<string, NativeItem>();
  /** Up to this number it has everything. */
  rev = 0;
  turn: TurnNow | null = null;
  /** How many turns have ended. */
  ended = 0;
  /** How often each type of line came, and how many deltas did not fit. */
  readonly seen = { item: 0, delta: 0, turn: 0, unfit: 0 };

  /** Takes whole lines. */
  take(lines: string): void {
    for (const line of lines.split("\n")) if (line !== "") this.#line(line);
  }

  /** The text of an item. */
  textOf(id: string): string {
    const last = this.items.get(id)?.content.at(-1);
    return last?.type === "text" ? last.text : "";
  }

  #line(line: string): void {
    const report = decode(line);
    this.seen[report.type] += 1;
    if (report.type === "item") {
      if (report.item.rev <= this.rev) throw new Error(`version ${report.item.rev} came after ${this.rev}`);
      this.rev = report.item.rev;
      this.items.set(report.item.native_id, report.item);
    } else if (report.type === "turn") {
      if (report.rev < this.rev) throw new Error(`the turn at ${report.rev} came after ${this.rev}`);
      if (report.ended < this.ended) throw new Error(`turn ${this.ended} ended twice`);
      // A turn that was told as running ends before the state rests.
      if (
        report.turn.state === "idle" &&
        (this.turn?.state ?? "idle") !== "idle" &&
        report.ended === this.ended
      )
        throw new Error(`turn ${this.ended + 1} ended without being counted`);
      this.rev = report.rev;
      this.turn = report.turn;
      this.ended = report.ended;
    } else this.#delta(report.delta);
  }

  #delta({ native_id: id, offset, text }: Extract<ConversationReport, { type: "delta" }>["delta"]): void {
    const item = this.items.get(id);
    const before = this.textOf(id);
    if (item === undefined || before.length !== offset) {
      this.seen.unfit += 1;
      return;
    }
    const content = [...item.content.slice(0, -1), { type: "text" as const, text: before + text }];
    this.items.set(id, { ...item, content });
  }
}
