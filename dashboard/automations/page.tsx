/** The pages of a project's automations. */
import { run } from "./run.tsx";
import { runs } from "./runs.tsx";

export const pages = { run, runs };
