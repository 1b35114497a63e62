/** What `doctor` says about the isolation of `local`, by what a sandbox saw. */
import { commonFindings, isFiltered, judge, type Sighting } from "../machine/sighting.ts";
import type { DoctorFinding } from "../port.ts";

const kernel = judge("kernel");

export const localFindings = (sighting: Sighting): DoctorFinding[] => {
  const filter = isFiltered(sighting);
  return [
    ...commonFindings(sighting, kernel),
    kernel(
      "system calls",
      filter,
      filter ? "a seccomp filter" : "no filter in this form on this processor; install bubblewrap",
    ),
  ];
};
