/** Planted bugs (plants.ts) about sandboxes that wait for a session. */
import type { Plant } from "../plants.ts";

export const PLANTS_OF_WARM: readonly Plant[] = [
  {
    name: "waiting-sandbox-given-twice",
    file: "test/twins/store/sessions/warm-sandboxes.ts",
    find: "row.claim === null && row.recipe !== null",
    put: "row.recipe !== null",
    seed: 3_000_000_019,
  },
  {
    name: "outdated-waiting-sandbox-taken",
    file: "src/actors/sandboxes/boot.ts",
    find: "warmRecipe === specRecipe(spec)",
    put: "warmRecipe.length === specRecipe(spec).length",
    seed: 3_000_000_023,
  },
  {
    name: "secrets-missing-in-the-digest",
    file: "src/actors/sandboxes/spec.ts",
    find: "    PLATFORM_EXECUTOR_TOKEN: _executor,\n",
    put: "    PLATFORM_EXECUTOR_TOKEN: _executor,\n    PLATFORM_PROJECT_SECRETS_REVISION: _revision,\n",
    seed: 3_000_000_039,
  },
  {
    name: "claimed-sandbox-left-by-its-session",
    file: "test/twins/store/sessions/warm-sandboxes.ts",
    find: "Math.abs(now - row.claim.at) > ABANDONED_MS",
    put: "row.claim.at > now",
    seed: 3_000_000_008,
  },
  {
    name: "waiting-sandbox-of-a-former-life-kept",
    file: "src/duties/warm-pool.ts",
    find: "    if (!mine.has(id)) return false;\n",
    put: "    if (!mine.has(id)) return true;\n",
    seed: 3_000_000_004,
  },
  {
    name: "one-more-waits-than-there-are-places",
    file: "src/duties/warm-pool.ts",
    find: "if (rows.length < pool.places) return true;",
    put: "if (rows.length <= pool.places) return true;",
    seed: 3_000_000_001,
  },
];
