/** How a session's kept logs make room for each other: shared by both adapters, so that they cannot differ. */

const NEWLINE = 0x0a;

/** The newest whole lines, at most so many bytes of them. */
export const newestOf = (text: Buffer, bytes: number): Buffer => {
  if (text.length <= bytes) return text;
  const cut = text.length - bytes;
  // A cut right after an end of line leaves a whole line.
  if (text[cut - 1] === NEWLINE) return text.subarray(cut);
  const end = text.indexOf(NEWLINE, cut);
  return end === -1 ? Buffer.alloc(0) : text.subarray(end + 1);
};
