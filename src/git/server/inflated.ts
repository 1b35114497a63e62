/** The body of a request whose client has packed it with gzip. */
import * as NodeStream from "@effect/platform-node/NodeStream";
import type * as Stream from "effect/Stream";
import { createGunzip } from "node:zlib";
import { GitError } from "../port.ts";

export const inflate = (body: Stream.Stream<Uint8Array, unknown>): Stream.Stream<Uint8Array, unknown> =>
  NodeStream.pipeThroughDuplex(body, {
    evaluate: () => createGunzip(),
    onError: () => new GitError({ code: "git_failed", message: "The request's gzip data is damaged." }),
  });
