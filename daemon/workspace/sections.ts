/** Output of a script in sections: records that end with NUL, with an empty one behind each section. */

/** Paths are bytes, held as latin1 text, one character a byte: names may contain line ends and need not be UTF-8. */
export const sections = (listing: Buffer): string[][] => {
  const result: string[][] = [[]];
  for (const record of listing.toString("latin1").split("\0")) {
    if (record === "") result.push([]);
    else result.at(-1)?.push(record);
  }
  return result;
};
