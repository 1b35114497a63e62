/**
 * One stream of frames out of several bodies with the same frames: each goes on where the one before it broke off. So a
 * restoration ends well if the service, or its connection, ends in the middle.
 */
import { createHash } from "node:crypto";
import { once } from "node:events";
import type { Readable, Writable } from "node:stream";
import { chunkHead, frameEnd, FrameReader, type FramePart } from "../../../src/domain/save/frames.ts";

/** `whole`: the body ended well, or its reader has ended. `broken`: it broke off. `other`: it is not the same as the ones before. */
export type Passed = "whole" | "broken" | "other";

/** Where a body stands: the number of its ended frames, and of bytes in the present one. */
interface Place {
  frame: number;
  bytes: number;
}

export class JoinedBodies {
  readonly #output: Writable;
  /** The end of the part that was passed on. */
  readonly #given: Place = { frame: 0, bytes: 0 };
  readonly #digest = createHash("sha256");

  constructor(output: Writable) {
    this.#output = output;
    // Its reader may end early, and says why itself.
    output.on("error", () => undefined);
  }

  /** Passes on what the bodies before did not have. The output stays open. */
  async pass(body: Readable): Promise<Passed> {
    const reader = new FrameReader();
    const again = new Again(this.#given, this.#digest.copy().digest("hex"));
    try {
      // The request's answer needs its connection.
      for await (const chunk of body.iterator({ destroyOnReturn: false })) {
        for (const part of reader.push(chunk as Buffer)) {
          const fresh = again.take(part);
          if (fresh === "other") return "other";
          // oxlint-disable-next-line no-await-in-loop -- frames have an order
          if (fresh !== null && !(await this.#give(fresh))) return "whole";
        }
      }
    } catch {
      return "broken";
    } finally {
      body.resume();
    }
    return again.isOver ? "whole" : "other";
  }

  /** @returns whether the output still takes something */
  async #give(part: FramePart): Promise<boolean> {
    const output = this.#output;
    if (output.destroyed) return false;
    if (part.type === "end") {
      this.#given.frame += 1;
      this.#given.bytes = 0;
      this.#digest.update(part.end);
      output.write(frameEnd(part.end));
    } else {
      this.#given.bytes += part.bytes.length;
      this.#digest.update(part.bytes);
      output.write(chunkHead(part.bytes.length));
      output.write(part.bytes);
    }
    if (output.writableNeedDrain) {
      const isOver = new AbortController();
      const { signal } = isOver;
      // An error of the output is followed by its close.
      const events = ["drain", "close"].map((event) =>
        once(output, event, { signal }).catch(() => undefined),
      );
      await Promise.race(events);
      isOver.abort();
    }
    return !output.destroyed;
  }
}

/** The part of a body that was passed on before, which is compared and left out. */
class Again {
  readonly #until: Place;
  readonly #expected: string;
  readonly #digest = createHash("sha256");
  readonly #at: Place = { frame: 0, bytes: 0 };
  #isOver: boolean;

  /** Whether everything that was passed on before is in the body. */
  get isOver(): boolean {
    return this.#isOver;
  }

  constructor(place: Place, expected: string) {
    this.#until = { ...place };
    this.#expected = expected;
    this.#isOver = place.frame === 0 && place.bytes === 0;
  }

  /** @returns the new part of it. Null if the bodies before had all of it */
  take(part: FramePart): FramePart | "other" | null {
    if (this.#isOver) return part;
    const missing = this.#at.frame === this.#until.frame ? this.#until.bytes - this.#at.bytes : Infinity;
    if (part.type === "end") {
      if (missing !== Infinity) return "other";
      this.#digest.update(part.end);
      this.#at.frame += 1;
      this.#at.bytes = 0;
    } else {
      const bytes = part.bytes.subarray(0, Math.min(missing, part.bytes.length));
      this.#digest.update(bytes);
      this.#at.bytes += bytes.length;
    }
    if (this.#at.frame < this.#until.frame || this.#at.bytes < this.#until.bytes) return null;
    this.#isOver = true;
    if (this.#digest.digest("hex") !== this.#expected) return "other";
    const rest = part.type === "end" ? null : part.bytes.subarray(missing);
    return rest === null || rest.length === 0 ? null : { type: "chunk", bytes: Buffer.from(rest) };
  }
}
