/**
 * What the service tells the programs in a build's sandbox (`request.json`), and how they report. These files run inside,
 * on Node alone: they import nothing else.
 */
import { readFileSync, writeSync } from "node:fs";

export interface InsideRequest {
  /** Paths within the context. */
  readonly dockerfile: string;
  readonly target: string | null;
  readonly args: Readonly<Record<string, string>>;
  /** Names of the files in SECRETS. */
  readonly secrets: readonly string[];
  readonly pull: "missing" | "newer";
  readonly imageBytes: number;
  readonly imageFiles: number;
}

/** What `export` reports as JSON. Its environment is as the image has it: `NAME=value`. */
export type Exported =
  | {
      readonly kind: "exported";
      readonly digest: string;
      readonly env: readonly string[];
      readonly user: string;
      readonly workdir: string;
      readonly bytes: number;
      readonly files: number;
    }
  | { readonly kind: "too_large"; readonly what: "image" | "files" | "path" }
  | { readonly kind: "failed"; readonly problem: string };

const SIGNAL_FD = 3;

/** The directory of the build's secrets, a file for each. The first phase has it. */
export const SECRETS = "/run/platform/secrets";

/** The second phase gets the image of the first from its input. */
export const readRequest = (): InsideRequest =>
  JSON.parse(readFileSync("/opt/platform/request.json", "utf8")) as InsideRequest;

/** Reports one line to the service. */
export const report = (line: string): void => {
  const bytes = Buffer.from(`${line}\n`);
  for (let at = 0; at < bytes.length;) at += writeSync(SIGNAL_FD, bytes, at);
};
