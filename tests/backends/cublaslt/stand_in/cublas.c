/* A stand-in for classic cuBLAS. */
#include "cublaslt.c"
typedef struct{void*stream;void*ws;size_t n;int mode;void*ctx;}H;
int cublasCreate_v2(H**h){*h=calloc(1,sizeof(H));(*h)->ctx=context();return 0;}
int cublasDestroy_v2(H*h){free(h);return 0;}
int cublasSetStream_v2(H*h,void*s){h->stream=s;h->ws=0;return 0;}
int cublasSetMathMode(H*h,int m){h->mode=m;return 0;}
int cublasSetWorkspace_v2(H*h,void*w,size_t n){h->ws=w;h->n=n;return 0;}
const char*cublasGetStatusString(int s){return "fake";} const char*cublasGetStatusName(int s){return "fake";}
/* The real one keeps partial sums in its workspace. */
static void work(H*h){if(h->ws){((volatile char*)h->ws)[0]=1;((volatile char*)h->ws)[h->n-1]=1;}}
static int sct(int c,int t){return c==64?2:c==70?(t==5?5:1):(t==4?4:0);}
int cublasGemmEx(H*h,int ta,int tb,int m,int n,int k,const void*al,const void*A,int at,int lda,const void*B,int bt,int ldb,const void*be,void*C,int ct,int ldc,int comp,int algo){note(C,h->stream,h->ws,h->mode);if(h->ctx!=context())return 14;work(h);int s=sct(comp,at);gemm(ta,tb,m,n,k,scal(s,al),A,at,lda,B,bt,ldb,scal(s,be),C,ct,ldc,C,ct,ldc,0,0);return 0;}
int cublasGemmStridedBatchedEx(H*h,int ta,int tb,int m,int n,int k,const void*al,const void*A,int at,int lda,long long sa,const void*B,int bt,int ldb,long long sb,const void*be,void*C,int ct,int ldc,long long sc,int batch,int comp,int algo){for(int b=0;b<batch;b++)cublasGemmEx(h,ta,tb,m,n,k,al,(char*)A+b*sa*sz(at),at,lda,(char*)B+b*sb*sz(bt),bt,ldb,be,(char*)C+b*sc*sz(ct),ct,ldc,comp,algo);return 0;}
