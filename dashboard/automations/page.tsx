/** The pages of a project's automations, and the list of those of all projects. */
import { allTriggers } from "./all.tsx";
import { editTrigger, newTrigger } from "./edit.tsx";
import { run } from "./run.tsx";
import { runs } from "./runs.tsx";
import { triggers } from "./triggers.tsx";

export const pages = { allTriggers, editTrigger, newTrigger, run, runs, triggers };
