/** Descriptors that the process which starts sandboxes inherited, and how a test plants them. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { constants, fstatSync, openSync } from "node:fs";
import { join } from "node:path";
import * as Effect from "effect/Effect";
import { type Case, sandbox, specOf } from "../../conformance/sandboxes/sandbox.ts";
import type { MachineWorld } from "./machine-cases.ts";
import { runIn } from "./machine-subject.ts";

/** Low and high numbers, directories, files, a pipe, and (`"pipe"` is a pair of them) sockets. */
export const plantedIn = (directory: string): ReadonlyMap<number, number | "pipe"> => {
  const fifo = join(directory, "planted-fifo");
  execFileSync("mkfifo", [fifo]);
  const pipe = openSync(fifo, constants.O_RDWR);
  const root = openSync("/", constants.O_RDONLY | constants.O_DIRECTORY);
  const file = openSync("/etc/passwd", "r");
  return new Map<number, number | "pipe">([
    [3, root],
    [9, file],
    [10, "pipe"],
    [63, root],
    [64, file],
    [255, pipe],
    [256, "pipe"],
    [1000, root],
  ]);
};

/** For `spawn`: standard input, output and error, then what is planted at its numbers. */
export const withPlanted = <A>(
  standard: readonly [A, A, A],
  planted: ReadonlyMap<number, number | "pipe">,
): (A | number | "pipe" | "ignore")[] => {
  const last = Math.max(...planted.keys());
  const rest = Array.from({ length: last - 2 }, (_, index) => planted.get(index + 3) ?? "ignore");
  return [...standard, ...rest];
};

/** What a descriptor of this process leads to: the same in every process that has it. */
export const fileOf = (descriptor: number): string => {
  const { dev, ino } = fstatSync(descriptor);
  return `${dev}:${ino}`;
};

export const DESCRIPTOR_CASE = "passes no inherited descriptor to daemon and agent";

/** Names the file behind each descriptor of each process that its user may look at. */
const DESCRIPTORS = "stat -L -c '%d:%i %n' /proc/[0-9]*/fd/* /proc/self/fd/* 2>/dev/null";

export const descriptorCases = ({ setup, subject }: MachineWorld): readonly Case[] =>
  setup.planted.length === 0
    ? []
    : [
        {
          name: DESCRIPTOR_CASE,
          run: Effect.gen(function* () {
            const spec = specOf(randomUUID(), { image: subject.image });
            yield* sandbox(spec);
            const planted = new Set(setup.planted.map(fileOf));
            for (const user of ["daemon", "agent"] as const) {
              const { stdout } = yield* runIn(spec.id, user, DESCRIPTORS);
              assert.match(stdout, /\/proc\/self\/fd\/2$/m);
              const seen = stdout.split("\n").filter((line) => planted.has(line.split(" ")[0] ?? ""));
              assert.deepEqual(seen, [], `the ${user}`);
            }
          }).pipe(Effect.scoped, Effect.provide(subject.layer)),
        },
      ];
