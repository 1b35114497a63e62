/** The last line of a diff that was cut. Lines of a diff begin with another character. */
export const cutLine = (maxBytes: number): string =>
  `[The diff is longer than ${maxBytes} bytes and was cut here.]`;

const CUT = /(?:^|\n)\[The diff is longer than \d+ bytes and was cut here\.\]\n?$/;

export const isCutDiff = (diff: string): boolean => CUT.test(diff);
