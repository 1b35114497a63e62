/** `local` on the machine's own root. */
import { sampled } from "../support/vitest/rings.ts";
import { machineSuites } from "./machine-harness.ts";

const FORMS = ["bubblewrap", "namespaces"] as const;

machineSuites({ image: null, lacks: null, forms: FORMS, others: sampled(FORMS, ["bubblewrap"]) });
