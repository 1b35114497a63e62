/** `local` on the machine's own root. */
import { isDeep, sampled } from "../../support/vitest/rings.ts";
import { machineSuites, SAMPLE_CASES } from "./machine-harness.ts";

const FORMS = ["bubblewrap", "namespaces"] as const;

machineSuites({
  image: null,
  lacks: null,
  forms: FORMS,
  others: sampled(FORMS, []),
  only: (form) => (isDeep || form === "bubblewrap" ? null : SAMPLE_CASES),
});
