/** Limits how many streams one token may have open. */
import * as Effect from "effect/Effect";
import { TooMany } from "../api/errors.ts";

/**
 * Counts a token's open streams. A stream counts until its request's scope closes, after the last byte of the answer.
 *
 * @returns a function that takes a place, or fails with 429 `too_many_streams`.
 */
export const streamCounter = (max: number) => {
  const open = new Map<string, number>();
  const enter = (tokenId: string) =>
    Effect.suspend(() => {
      const others = open.get(tokenId) ?? 0;
      if (others >= max) return Effect.fail(tooManyStreams(max));
      open.set(tokenId, others + 1);
      return Effect.void;
    });
  const leave = (tokenId: string) =>
    Effect.sync(() => {
      const others = (open.get(tokenId) ?? 0) - 1;
      if (others > 0) open.set(tokenId, others);
      else open.delete(tokenId);
    });
  return (tokenId: string) => Effect.acquireRelease(enter(tokenId), () => leave(tokenId));
};

const tooManyStreams = (limit: number) =>
  new TooMany({
    error: `This token already has ${limit} open event streams. Close one first.`,
    code: "too_many_streams",
    details: { limit },
  });
