/** Planted bugs (plants.ts) about calls that wait for a person. */
import type { Plant } from "../plants.ts";

export const PLANTS_OF_APPROVALS: readonly Plant[] = [
  {
    name: "approved-call-made-by-each-node",
    file: "src/features/approvals/duty.ts",
    find: '  if (beginning !== "begun") return;\n',
    put: "",
    seed: 2_000_028,
  },
  {
    name: "lost-call-made-again",
    file: "src/features/approvals/machine.ts",
    find: '"call.lost": { target: "unknown" }',
    put: '"call.lost": { target: "approved" }',
    seed: 2_000_001,
  },
  {
    name: "expired-call-made",
    file: "src/features/approvals/machine.ts",
    find: '"deadline.passed": { target: "expired" }',
    put: '"deadline.passed": { target: "approved" }',
    seed: 2_000_001,
  },
  {
    name: "second-decision-counts",
    file: "src/features/approvals/handlers.ts",
    find: "  if (result === null || isLate)\n",
    put: "  if (isLate)\n",
    more: [
      {
        file: "src/features/approvals/handlers.ts",
        find: "  return yield* showApproval(result, yield* projectRedactor(pid));",
        put: "  return yield* showApproval(result ?? approval, yield* projectRedactor(pid));",
      },
    ],
    seed: 2_000_001,
  },
  {
    name: "result-of-a-caller-that-left-kept-back",
    file: "src/features/approvals/waiting-calls.ts",
    find: "heldUntil = now + LEASE_MS;",
    put: "heldUntil = now + 4000 * LEASE_MS;",
    seed: 2_000_001,
  },
];
