/** Why an archive cannot become an image. The message is for people and says what to do. */
export class UnpackFailure extends Error {
  override readonly name = "UnpackFailure";
}
