/** The pages of a project's automations. */
import { editTrigger, newTrigger } from "./edit.tsx";
import { run } from "./run.tsx";
import { runs } from "./runs.tsx";
import { triggers } from "./triggers.tsx";

export const pages = { editTrigger, newTrigger, run, runs, triggers };
