/**
 * Our own static programs for sandboxes, compiled from the C sources beside this file (`npm run build:native`). A
 * machine may lack a compiler, so their bytes are kept, with digests and the compilers' versions in programs.json.
 */
import { readFileSync } from "node:fs";
import type { Architecture } from "../machine/isolation/seccomp.ts";

export const NATIVE_PROGRAMS = ["gate", "terminal"] as const;
export type NativeProgram = (typeof NATIVE_PROGRAMS)[number];

/** Where a program is kept, below this folder. */
export const nativePath = (program: NativeProgram, architecture: Architecture): string =>
  `${architecture}/${program}`;

/** The bytes of a program. */
export const nativeProgram = (program: NativeProgram, architecture: Architecture): Buffer =>
  readFileSync(new URL(nativePath(program, architecture), import.meta.url));
