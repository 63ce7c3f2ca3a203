/* The stand-in for classic cuBLAS, with its calls on several products: addresses are read from device memory. */
#include "cublas.c"
long fake_batched=0, fake_grouped=0, fake_groups=0;
int fake_status=0;
static const char*nth(const void*const*list,long i){if((uintptr_t)list[i]%16){fprintf(stderr,"misaligned\n");abort();}return list[i];}
int cublasGemmBatchedEx(H*h,int ta,int tb,int m,int n,int k,const void*al,const void*const*A,int at,int lda,const void*const*B,int bt,int ldb,const void*be,void*const*C,int ct,int ldc,int count,int comp,int algo){
  if(fake_status)return fake_status; fake_batched++;
  for(int i=0;i<count;i++){int s=cublasGemmEx(h,ta,tb,m,n,k,al,nth(A,i),at,lda,nth(B,i),bt,ldb,be,(void*)nth((void*)C,i),ct,ldc,comp,algo);if(s)return s;}
  return 0;}
int cublasGemmGroupedBatchedEx(H*h,const int*ta,const int*tb,const int*m,const int*n,const int*k,const void*al,const void*const*A,int at,const int*lda,const void*const*B,int bt,const int*ldb,const void*be,void*const*C,int ct,const int*ldc,int groups,const int*sizes,int comp){
  if(fake_status)return fake_status; fake_grouped++; fake_groups=groups;
  long place=0; int wide=comp==70?8:4;
  for(int g=0;g<groups;g++)for(int i=0;i<sizes[g];i++,place++){int s=cublasGemmEx(h,ta[g],tb[g],m[g],n[g],k[g],(char*)al+g*wide,nth(A,place),at,lda[g],nth(B,place),bt,ldb[g],(char*)be+g*wide,(void*)nth((void*)C,place),ct,ldc[g],comp,-1);if(s)return s;}
  return 0;}
