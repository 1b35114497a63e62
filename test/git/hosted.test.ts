import { afterAll, describe } from "@effect/vitest";
import * as Layer from "effect/Layer";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { hostedBackend } from "../../src/git/hosted.ts";
import { gitConformance } from "../conformance/git.ts";
import { hostedPushes } from "../conformance/git-pushes.ts";

const directory = mkdtempSync(join(tmpdir(), "hosted-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

describe("the hosted backend", () =>
  gitConformance(Layer.merge(hostedBackend({ directory }), hostedPushes(directory))));
