/** `local` on the machine's own root. */
import { sampled } from "../support/vitest/rings.ts";
import { localSuites } from "./local-harness.ts";

const FORMS = ["bubblewrap", "namespaces"] as const;

localSuites({ image: null, lacks: null, forms: FORMS, others: sampled(FORMS, ["bubblewrap"]) });
