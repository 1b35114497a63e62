/** Workers are killed at the end of a run. Without this, those that start later compile everything again. */
import { flushCompileCache } from "node:module";
import { afterAll } from "vitest";

afterAll(() => flushCompileCache());
